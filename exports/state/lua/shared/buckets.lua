-- One observation of a histogram: the count of its bucket (the last one is `inf`), and the sum of all.
-- KEYS
--   metrics   hash    <name>:<upper bound in ms> -> observations in that bucket alone, <name>:ms -> their sum
-- USES
--   time
local function observe(name, took, bounds)
  local bucket = 'inf'
  for _, bound in ipairs(bounds) do
    if took <= bound then bucket = int(bound) break end
  end
  redis.call('HINCRBY', K.metrics, name .. ':' .. bucket, 1)
  redis.call('HINCRBY', K.metrics, name .. ':ms', int(took))
end
