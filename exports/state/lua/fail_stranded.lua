#!lua flags=allow-oom
-- Fail a task whose spool has had no worker for some time. What lies there stays for a rerun, should it come back.
-- State: queued | running -> failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   alive     0 or 1  1: the spool has a worker
--   grace_ms  ms      how long its workers are waited for
-- USES
--   endings
-- REPLY
--   failed     the task has failed
--   cancelled  a cancel had been accepted
--   no         nothing to do yet
local t = redis.call('HMGET', K.task, 'state', 'stranded_since')
local now = now_ms()
if t[1] ~= 'queued' and t[1] ~= 'running' then return {'no'} end
if A.alive == '1' then
  redis.call('HDEL', K.task, 'stranded_since')
  return {'no'}
end
redis.call('HSETNX', K.task, 'stranded_since', int(now))
if now - number_of(t[2] or int(now)) < tonumber(A.grace_ms) or live_leases(now) > 0 then return {'no'} end
return {fail('', 'spool_lost', '1', 0, now)}
