#!lua
-- Mark a running task that has made no progress for some time, once, and propose it before all others.
-- State: running -> running. Cost: O(log tasks).
-- KEYS
--   task      hash    the task
--   metrics   hash    counters
-- ARGV
--   after_ms  ms      silence that is no longer in order
-- USES
--   time
--   events
--   runnable
-- REPLY
--   stalled   marked now
--   no        it moves, has ended or is marked already
local t = redis.call('HMGET', K.task, 'state', 'phase', 'progress_at', 'stalled_at')
local now = now_ms()
if t[1] ~= 'running' or (t[4] or '') ~= '' or now - number_of(t[3] or '') < tonumber(A.after_ms) then return {'no'} end
redis.call('HSET', K.task, 'stalled_at', int(now))
redis.call('HINCRBY', K.metrics, 'stalled', 1)
propose(class_of(t[2]), 0)
note(now, 'stalled', '')
return {'stalled'}
