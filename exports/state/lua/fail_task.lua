#!lua flags=allow-oom
-- Fail the task for good. Cursors and segments stay for a rerun.
-- State: running -> failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   step       text    the step that failed
--   claim      text    the claim that holds it
--   code       text    what went wrong
--   retryable  0 or 1  whether a rerun may help without a change
-- USES
--   endings
-- REPLY
--   failed     the task has failed
--   cancelled  a cancel had been accepted
--   lost       the claim does not hold the step any more
if not held(A.step, A.claim) then return {'lost'} end
local r = read_record(A.step)
return {fail(A.step, A.code, A.retryable, (r and r.attempts or 0) + 1, now_ms())}
