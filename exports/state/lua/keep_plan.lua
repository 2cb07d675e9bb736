#!lua
-- Keep one result of planning, so that a plan that is taken over goes on where it was. The first value stays.
-- State: running -> running. Cost: O(log leases).
-- KEYS
--   plan      hash    shard id -> constants; '' -> snapshot
-- ARGV
--   claim     text    the claim that holds the plan
--   field     text    shard id, or '' for the snapshot
--   value     text    the kind's own text
-- USES
--   leases
--   progress
-- REPLY
--   ok        kept
--   stop      the task is being cancelled
--   lost      the claim does not hold the plan any more
local l = held('plan', A.claim)
if not l then return {'lost'} end
redis.call('HSETNX', K.plan, A.field, A.value)
local now = now_ms()
progressed(now, 0)
write_lease('plan', l, now)
return {cancel_requested() ~= '' and 'stop' or 'ok'}
