#!lua
-- Put a step back for a later try, or fail the task when its tries are used up. Attempts survive a kill.
-- State: running -> running | failed | cancelled. Cost: O(leases of the task).
-- ARGV
--   step      text    the step
--   claim     text    the claim that holds it
--   code      text    what went wrong
--   part      count   the part of the upload that failed, from 1; 0 for none
--   delays*   ms      pause before each further try
-- USES
--   endings
-- REPLY
--   retry      ms until the next try
--   failed     the task has failed
--   cancelled  the task is cancelled
--   lost       the claim does not hold the step any more
if not held(A.step, A.claim) then return {'lost'} end
local now = now_ms()
local r = read_record(A.step)
local attempts = r and r.attempts or number_of(redis.call('HGET', K.task, 'attempts_' .. A.step))
attempts = attempts + 1
if r then
  r.attempts = attempts
  write_record(A.step, r)
else
  redis.call('HSET', K.task, 'attempts_' .. A.step, int(attempts))
end
local delay = A.delays[attempts]
if not delay then
  local word = fail(A.step, A.code, '1', attempts, now)
  if A.part ~= '0' then redis.call('HSET', K.task, 'error_page', A.part) end
  return {word}
end
redis.call('HINCRBY', K.metrics, 'retries:' .. A.code, 1)
note(now, 'retry', A.code .. ' ' .. A.step)
return {put_back(A.step, now + tonumber(delay), now) or 'retry', delay}
