#!lua flags=allow-oom
-- Fail a task that no worker can go on with: every one has had another specification for some time.
-- State: queued | running -> failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   grace_ms  ms      how long workers with its specification are waited for
-- USES
--   endings
-- REPLY
--   failed     the task has failed: it can be run again from scratch
--   cancelled  a cancel had been accepted
--   no         nothing to do yet
local since = number_of(redis.call('HGET', K.task, 'foreign_since') or '')
local state = redis.call('HGET', K.task, 'state')
local now = now_ms()
if (state ~= 'queued' and state ~= 'running') or since == 0 then return {'no'} end
if now - since < tonumber(A.grace_ms) or live_leases(now) > 0 then return {'no'} end
return {fail('', 'specification_changed', '0', 0, now)}
