#!lua flags=allow-oom
-- Take a task off the list of ends that are to be told, unless it has ended again since.
-- Cost: O(log ended tasks).
-- KEYS
--   notify    zset  task id -> ended (ms)
-- ARGV
--   id        text  task id
--   ended_ms  ms    the end that was told
-- REPLY
--   ok        it is off the list, or another end is on it
if redis.call('ZSCORE', K.notify, A.id) == A.ended_ms then redis.call('ZREM', K.notify, A.id) end
return {'ok'}
