-- Shards that are read again from their first row: what was committed of them is forgotten.
-- KEYS
--   pending   zset    step -> earliest time (ms)
--   segments  hash    segment -> committed part
--   done      set     finished shards
-- USES
--   records
local function reopen(shards)
  local reopened = {}
  for _, shard in ipairs(shards) do
    local r = read_record(shard)
    r.rows, r.pages, r.drift, r.cursor = 0, 0, '', ''
    write_record(shard, r)
    redis.call('SREM', K.done, shard)
    redis.call('ZADD', K.pending, 0, shard)
    reopened[shard] = true
  end
  local segments = redis.call('HGETALL', K.segments)
  for i = 1, #segments, 2 do
    local shard = string.match(segments[i + 1], '^%d+|%d+|%d+|%d+|%d+|(.*)$')
    if reopened[shard] then redis.call('HDEL', K.segments, segments[i]) end
  end
end
