#!lua
-- Take a requestId and make its task, at once.
-- State: none -> queued. Cost: O(log tasks).
-- KEYS
--   request        string  <task id>|<fingerprint>
--   task           hash    the task
--   pending        zset    step -> earliest time (ms)
--   runnable_plan  zset    task id -> last claim (ms)
--   index_owner    zset    task id -> submitted (ms)
--   index_queued   zset    task id -> entered (ms)
--   metrics        hash    counters
-- ARGV
--   id           text    id of the new task
--   fingerprint  text    digest of from, to and format
--   fields*      text    field, value, … of the task
-- USES
--   time
--   events
-- REPLY
--   created      the task is new
--   known        <task id>|<fingerprint> of the task that has this requestId
local known = redis.call('GET', K.request)
if known then return {'known', known} end
local now = now_ms()
redis.call('SET', K.request, A.id .. '|' .. A.fingerprint)
redis.call('HSET', K.task, 'state', 'queued', 'phase', '', 'epoch', '1', 'fence', '0', 'created_at', int(now),
  'started_at', '', 'finished_at', '', 'cancel_requested_at', '', unpack(A.fields))
redis.call('ZADD', K.pending, int(now), 'plan')
redis.call('ZADD', K.runnable_plan, int(now), A.id)
redis.call('ZADD', K.index_owner, int(now), A.id)
redis.call('ZADD', K.index_queued, int(now), A.id)
redis.call('HINCRBY', K.metrics, 'state:queued', 1)
note(now, 'queued', '')
return {'created'}
