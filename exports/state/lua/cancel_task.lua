#!lua flags=allow-oom
-- Accept a cancel. From here no claim succeeds; without a live lease the task ends at once.
-- State: queued | running | failed -> cancelled, or running with a cancel on its way. Cost: O(leases of the task).
-- ARGV
--   by        text    who asked, and why
-- USES
--   endings
-- REPLY
--   cancelled  the task is cancelled now
--   accepted   the pages in progress are finished first
--   already    it was cancelled before
--   refused    it has succeeded
--   gone       there is no such task
local state = redis.call('HGET', K.task, 'state')
if not state then return {'gone'} end
if state == 'cancelled' then return {'already'} end
if state == 'succeeded' then return {'refused'} end
local now = now_ms()
local asked_before = cancel_requested() ~= ''
if not asked_before then note(now, 'cancel', A.by) end
if live_leases(now) == 0 then return {end_task('cancelled', now, '')} end
if not asked_before then redis.call('HSET', K.task, 'cancel_requested_at', int(now)) end
return {'accepted'}
