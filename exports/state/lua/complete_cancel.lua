#!lua flags=allow-oom
-- End a task whose cancel was accepted some time ago, whatever its workers do.
-- State: running -> running | cancelled. Cost: O(leases of the task).
-- ARGV
--   grace_ms   ms      how long live leases are waited for
-- USES
--   endings
-- REPLY
--   cancelled  the task is cancelled now
--   no         nothing to do yet
local requested = number_of(cancel_requested())
if redis.call('HGET', K.task, 'state') ~= 'running' or requested == 0 then return {'no'} end
local now = now_ms()
if now - requested < tonumber(A.grace_ms) and live_leases(now) > 0 then return {'no'} end
return {end_task('cancelled', now, '')}
