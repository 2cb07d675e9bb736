#!lua
-- Take a step back from a worker that is gone. A page that loses its worker again and again is poison.
-- State: running -> running | failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   step      text    the step
--   claim     text    the claim that held it
--   proven    0 or 1  1: the worker is proved dead, the lease need not have run out
--   counted   0 or 1  0: one of several leases lost by one host at once
--   limit     count   recoveries at one cursor, or of another step than a shard, that fail the task
--   smallest  rows    no page is made smaller
-- USES
--   endings
-- REPLY
--   ok         back to pending
--   alive      the lease has not run out
--   failed     the task has failed
--   cancelled  the task is cancelled
--   lost       the claim does not hold the step any more
local l = held(A.step, A.claim)
if not l then return {'lost'} end
local now = now_ms()
if A.proven ~= '1' and l.expiry > now then return {'alive'} end
local r = read_record(A.step)
if r and l.begun == '1' and A.counted == '1' then
  r.recoveries = r.recoveries + 1
  r.page_rows = math.max(tonumber(A.smallest), math.floor(r.page_rows / 2))
  write_record(A.step, r)
  if r.recoveries >= tonumber(A.limit) then return {fail(A.step, 'poison', '0', r.recoveries, now)} end
end
if not r and A.counted == '1' then
  local recoveries = redis.call('HINCRBY', K.task, 'recoveries_' .. A.step, 1)
  if recoveries >= tonumber(A.limit) then return {fail(A.step, 'poison', '0', recoveries, now)} end
end
redis.call('HINCRBY', K.metrics, 'recoveries:' .. (r and 'shard' or A.step), 1)
note(now, 'recovered', A.step)
return {put_back(A.step, 0, now) or 'ok'}
