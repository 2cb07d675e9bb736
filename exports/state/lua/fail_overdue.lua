#!lua flags=allow-oom
-- Fail a task that has run for too long. Cursors and segments stay for a rerun, which starts a new account of time.
-- State: running -> failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   most_ms   ms      run time of a task
-- USES
--   endings
-- REPLY
--   failed     the task has failed
--   cancelled  a cancel had been accepted
--   no         nothing to do yet
local t = redis.call('HMGET', K.task, 'state', 'run_ms')
if t[1] ~= 'running' or number_of(t[2] or '') < tonumber(A.most_ms) then return {'no'} end
return {fail('', 'max_runtime', '1', 0, now_ms())}
