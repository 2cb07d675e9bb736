#!lua
-- Give a lease its full life again, and hear whether to go on.
-- State: running -> running. Cost: O(log leases).
-- ARGV
--   step      text    the step
--   claim     text    the claim that holds it
--   begun     0 or 1  1: the page behind the cursor is about to be read
--   moved     0 or 1  1: the work has made progress since the last call
-- USES
--   leases
--   progress
-- REPLY
--   ok        go on
--   stop      the task is being cancelled: commit the page in progress, then release
--   lost      the claim does not hold the step any more
local l = held(A.step, A.claim)
if not l then return {'lost'} end
if A.begun == '1' then l.begun = '1' end
local now = now_ms()
if A.moved == '1' then progressed(now, 0) end
write_lease(A.step, l, now)
return {cancel_requested() ~= '' and 'stop' or 'ok'}
