-- What all tasks did, minute by minute.
-- KEYS
--   history   hash    <minute since 1970>:<what> -> count
-- USES
--   time
local function count_minute(now, what, number)
  redis.call('HINCRBY', K.history, int(math.floor(now / 60000)) .. ':' .. what, number)
end
