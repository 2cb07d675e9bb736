#!lua
-- Take a worker off the list of those alive, and count it once if another one has to take its place.
-- State: none. Cost: O(1).
-- KEYS
--   workers   hash    worker -> its last sign of life
--   metrics   hash    counters
-- ARGV
--   worker    text    its name
--   reason    text    slices, memory or died; '' where nobody takes its place
-- REPLY
--   ok        forgotten now
--   gone      it was not there
if redis.call('HDEL', K.workers, A.worker) == 0 then return {'gone'} end
if A.reason ~= '' then redis.call('HINCRBY', K.metrics, 'restarts:' .. A.reason, 1) end
return {'ok'}
