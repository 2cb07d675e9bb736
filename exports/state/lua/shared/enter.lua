-- Entering a state: the index that lists it, and the counter.
-- KEYS
--   task             hash    the task
--   metrics          hash    counters
--   index_queued     zset    task id -> entered (ms)
--   index_running    zset    same
--   index_succeeded  zset    same
--   index_failed     zset    same
--   index_cancelled  zset    same
-- ARGV
--   id        text    task id
local function enter(state, now)
  for _, name in ipairs({'queued', 'running', 'succeeded', 'failed', 'cancelled'}) do
    if name ~= state then redis.call('ZREM', K['index_' .. name], A.id) end
  end
  redis.call('ZADD', K['index_' .. state], int(now), A.id)
  redis.call('HINCRBY', K.metrics, 'state:' .. state, 1)
  redis.call('HSET', K.task, 'state', state)
end
