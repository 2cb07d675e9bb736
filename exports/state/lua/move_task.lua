#!lua
-- Move a task that was worked on for longer than its queue allows on to the next slower one.
-- State: running -> running. Cost: O(1).
-- KEYS
--   task       hash    the task
-- ARGV
--   fast_ms    ms      run time of a task in the queue fast
--   normal_ms  ms      same, normal
-- USES
--   time
--   events
-- REPLY
--   moved      it is in the next queue now
--   no         nothing to do
local t = redis.call('HMGET', K.task, 'state', 'queue', 'run_ms')
local limit = ({fast = A.fast_ms, normal = A.normal_ms})[t[2] or '']
if t[1] ~= 'running' or not limit or number_of(t[3] or '') < tonumber(limit) then return {'no'} end
local queue = t[2] == 'fast' and 'normal' or 'slow'
redis.call('HSET', K.task, 'queue', queue)
note(now_ms(), 'moved', queue)
return {'moved'}
