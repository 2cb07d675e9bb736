#!lua
-- Fix the shards and the specification, and open the shards to claims. Written once.
-- State: running -> running, phase '' -> fetch (render if there is no shard). Cost: O(shards).
-- KEYS
--   pending   zset    step -> earliest time (ms)
-- ARGV
--   claim      text    the claim that holds the plan
--   page_rows  rows    first page size of every shard
--   digest     text    digest of the specification
--   as_of      text    ISO 8601, UTC
--   file_name  text    name of the file for people
--   queue      text    fast, normal or slow
--   spool      text    where its segments will lie
--   shards*    text    shard id, planned rows, …
-- USES
--   time
--   records
--   leases
--   events
--   runnable
--   progress
-- REPLY
--   ok        written, also when this claim had written it before
--   stop      the task is being cancelled: nothing written
--   lost      the claim does not hold the plan any more
if redis.call('HGET', K.task, 'plan_claim') == A.claim then return {'ok'} end
if not held('plan', A.claim) then return {'lost'} end
if cancel_requested() ~= '' then return {'stop'} end
local now = now_ms()
local rows = 0
for i = 1, #A.shards, 2 do
  rows = rows + tonumber(A.shards[i + 1])
  write_record(A.shards[i], {
    planned = tonumber(A.shards[i + 1]), rows = 0, seen = 0, pages = 0, page_rows = tonumber(A.page_rows),
    attempts = 0, recoveries = 0, drift = '', cursor = '',
  })
  redis.call('ZADD', K.pending, 0, A.shards[i])
end
local phase, class = 'fetch', 'shard'
if #A.shards == 0 then
  phase, class = 'render', 'render'
  redis.call('ZADD', K.pending, 0, 'render')
end
redis.call('HSET', K.task, 'phase', phase, 'digest', A.digest, 'as_of', A.as_of,
  'file_name', A.file_name, 'queue', A.queue, 'spool', A.spool, 'shard_count', int(#A.shards / 2),
  'planned_rows', int(rows), 'plan_claim', A.claim)
drop_lease('plan')
begin_progress(now)
propose(class, now)
note(now, 'planned', int(#A.shards / 2) .. ' shards')
return {'ok'}
