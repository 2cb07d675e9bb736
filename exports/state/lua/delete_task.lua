#!lua flags=allow-oom
-- Take away all that an ended task holds but who deleted it, when and why; it stays until it would have expired, but in
-- no list of a state. What others are told of it stays too.
-- Once deleted it stays as it is. Its files are the caller's to remove, and the sweep's after a kill.
-- State: succeeded -> succeeded, cancelled -> cancelled, failed -> cancelled. Cost: O(shards).
-- KEYS
--   plan      hash    constants of the shards
--   shards    hash    shard id -> record
--   pending   zset    step -> earliest time (ms)
--   segments  hash    segment -> committed part
--   done      set     finished shards
--   parts     hash    '' -> the upload, part number -> part
--   cleanup   zset    <task>|<owner digest> -> when to clean up (ms)
-- ARGV
--   by              text    who deletes it
--   reason          text    why
--   cleanup_member  text    the task's name in `cleanup`
-- USES
--   time
--   enter
--   events
-- REPLY
--   deleted   it is deleted, also when it was before
--   refused   it has not ended
--   gone      there is no such task
local state = redis.call('HGET', K.task, 'state')
if not state then return {'gone'} end
if state == 'queued' or state == 'running' then return {'refused'} end
if redis.call('HEXISTS', K.task, 'deleted_at') == 1 then return {'deleted'} end
local now = now_ms()
if state == 'failed' then
  enter('cancelled', now)
  state = 'cancelled'
end
redis.call('ZREM', K['index_' .. state], A.id)
redis.call('DEL', K.plan, K.shards, K.pending, K.segments, K.done, K.parts)
redis.call('HDEL', K.task, 'file_name', 'file_size', 'sha256', 'object_key', 'warnings', 'error_code',
  'error_phase', 'error_shard', 'error_page', 'error_cursor', 'error_attempts', 'error_retryable')
redis.call('HSET', K.task, 'deleted_at', int(now), 'deleted_by', A.by, 'deleted_reason', A.reason)
redis.call('ZADD', K.cleanup, int(now), A.cleanup_member)
note(now, 'deleted', '')
return {'deleted'}
