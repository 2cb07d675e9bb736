#!lua
-- Mark a shard done; the last one opens render. A shard counts once, however often it is finished.
-- State: running -> running, phase fetch -> render with the last one. Cost: O(1).
-- KEYS
--   done      set     finished shards
--   pending   zset    step -> earliest time (ms)
--   metrics   hash    counters
-- ARGV
--   step      text    shard id
--   claim     text    the claim that holds it
--   drift     text    exact, changed, unknown or a signed difference in rows
-- USES
--   time
--   records
--   leases
--   events
--   runnable
--   progress
-- REPLY
--   ok        done, or done before
--   last      done, and it was the last one
--   stop      nothing written, the task is being cancelled: release
--   lost      the claim does not hold the shard any more
if not held(A.step, A.claim) then
  return {redis.call('SISMEMBER', K.done, A.step) == 1 and 'ok' or 'lost'}
end
if cancel_requested() ~= '' then return {'stop'} end
local r = read_record(A.step)
r.drift, r.attempts, r.recoveries = A.drift, 0, 0
write_record(A.step, r)
redis.call('SADD', K.done, A.step)
if A.drift ~= 'exact' then
  local rows = tonumber(A.drift)
  redis.call('HINCRBY', K.metrics, 'drifted:' .. (rows and 'changed' or A.drift), 1)
  redis.call('HINCRBY', K.metrics, 'rows_drifted', int(math.abs(rows or 0)))
end
drop_lease(A.step)
local now = now_ms()
progressed(now, 0)
if redis.call('SCARD', K.done) < redis.call('HLEN', K.shards) then return {'ok'} end
redis.call('HSET', K.task, 'phase', 'render')
redis.call('ZADD', K.pending, 0, 'render')
propose('render', now)
note(now, 'fetched', '')
return {'last'}
