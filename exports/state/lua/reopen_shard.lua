#!lua
-- Read shards again whose committed bytes are missing or damaged; without any, render again. The limit fails the task.
-- State: running -> running | failed | cancelled, phase -> fetch (render without shards). Cost: O(segments).
-- ARGV
--   step      text    render or upload
--   claim     text    the claim that holds it
--   limit     count   the task fails when it happens this often
--   shards*   text    ids of the shards
-- USES
--   endings
--   reopening
-- REPLY
--   ok         reopened
--   failed     the task has failed
--   cancelled  a cancel had been accepted
--   lost       the claim does not hold the step any more
if not held(A.step, A.claim) then return {'lost'} end
local now = now_ms()
if cancel_requested() ~= '' then return {put_back(A.step, 0, now) or 'ok'} end
local count = redis.call('HINCRBY', K.task, 'reopens', 1)
if count >= tonumber(A.limit) then
  local word = fail(A.step, 'spool_lost', '1', count, now)
  redis.call('HSET', K.task, 'error_shard', A.shards[1] or '')
  return {word}
end
redis.call('HINCRBY', K.metrics, 'retries:spool_lost', 1)
reopen(A.shards)
drop_lease(A.step)
if #A.shards == 0 then redis.call('ZADD', K.pending, 0, 'render') end
redis.call('HSET', K.task, 'phase', #A.shards == 0 and 'render' or 'fetch')
propose(#A.shards == 0 and 'render' or 'shard', now)
note(now, 'reopened', table.concat(A.shards, ' '))
return {'ok'}
