-- Entering a state: the indexes that list it, and the counter.
-- KEYS
--   task             hash    the task
--   metrics          hash    counters
--   index_queued     zset    task id -> entered (ms)
--   index_running    zset    same
--   index_succeeded  zset    same
--   index_failed     zset    same
--   index_cancelled  zset    same
--   owner_queued     zset    task id -> entered (ms), of one owner
--   owner_running    zset    same
-- ARGV
--   id        text    task id
-- USES
--   minutes
local function enter(state, now)
  for _, name in ipairs({'queued', 'running', 'succeeded', 'failed', 'cancelled'}) do
    if name ~= state then redis.call('ZREM', K['index_' .. name], A.id) end
  end
  redis.call('ZADD', K['index_' .. state], int(now), A.id)
  redis.call('ZREM', K.owner_queued, A.id)
  redis.call('ZREM', K.owner_running, A.id)
  local of_owner = state == 'queued' and K.owner_queued or state == 'running' and K.owner_running
  if of_owner then redis.call('ZADD', of_owner, int(now), A.id) end
  redis.call('HINCRBY', K.metrics, 'state:' .. state, 1)
  count_minute(now, state, 1)
  redis.call('HSET', K.task, 'state', state)
end
