#!lua flags=allow-oom
-- Give a step back at its cursor; the last release completes a cancel.
-- State: running -> running | cancelled. Cost: O(leases of the task).
-- ARGV
--   step      text    the step
--   claim     text    the claim that holds it
-- USES
--   endings
-- REPLY
--   ok         given back
--   cancelled  given back, and the task is cancelled
--   lost       the claim does not hold the step any more
if not held(A.step, A.claim) then return {'lost'} end
local now = now_ms()
return {put_back(A.step, 0, now) or 'ok'}
