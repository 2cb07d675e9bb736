#!lua
-- Take a requestId and make its task, at once, within the limits of its owner.
-- State: none -> queued. Cost: O(log tasks).
-- KEYS
--   request        string  <task id>|<fingerprint>
--   task           hash    the task
--   pending        zset    step -> earliest time (ms)
--   runnable_plan  zset    task id -> last claim (ms)
--   index_owner    zset    task id -> submitted (ms)
--   index_queued   zset    task id -> entered (ms)
--   owner_queued   zset    same, of the owner
--   owner_running  zset    same
--   metrics        hash    counters
-- ARGV
--   id           text    id of the new task
--   fingerprint  text    digest of from, to and format
--   most_queued  count   queued tasks of an owner
--   most_made    count   tasks that an owner makes in a minute
--   fields*      text    field, value, … of the task
-- USES
--   time
--   events
--   minutes
-- REPLY
--   created      the task is new
--   known        <task id>|<fingerprint> of the task that has this requestId
--   queued       nothing is made, the queue is full; the task of the owner that is first to end
--   made         nothing is made, too many were in the last minute; that task; ms until the next may be made
local known = redis.call('GET', K.request)
if known then
  local task, fingerprint = string.match(known, '^([^|]*)|(.*)$')
  -- A call that is repeated after a lost reply finds its own task.
  if fingerprint == A.fingerprint and task ~= A.id then redis.call('HINCRBY', K.metrics, 'request_hits', 1) end
  return {'known', known}
end
local now = now_ms()
local first = redis.call('ZRANGE', K.owner_running, 0, 0)[1] or redis.call('ZRANGE', K.owner_queued, 0, 0)[1] or ''
local made = redis.call('ZRANGE', K.index_owner, -tonumber(A.most_made), -tonumber(A.most_made), 'WITHSCORES')
local wait = tonumber(made[2] or 0) + 60000 - now
if wait > 0 then return {'made', first, int(wait)} end
if redis.call('ZCARD', K.owner_queued) >= tonumber(A.most_queued) then return {'queued', first} end
redis.call('SET', K.request, A.id .. '|' .. A.fingerprint)
redis.call('HSET', K.task, 'state', 'queued', 'phase', '', 'epoch', '1', 'fence', '0', 'created_at', int(now),
  'started_at', '', 'finished_at', '', 'cancel_requested_at', '', unpack(A.fields))
redis.call('ZADD', K.pending, int(now), 'plan')
redis.call('ZADD', K.runnable_plan, int(now), A.id)
redis.call('ZADD', K.index_owner, int(now), A.id)
redis.call('ZADD', K.index_queued, int(now), A.id)
redis.call('ZADD', K.owner_queued, int(now), A.id)
redis.call('HINCRBY', K.metrics, 'state:queued', 1)
count_minute(now, 'queued', 1)
note(now, 'queued', '')
return {'created'}
