#!lua
-- Record the rendered artifact and open the upload. The object's key stands before its first byte goes out.
-- State: running -> running, phase render -> upload. Cost: O(1).
-- KEYS
--   pending   zset    step -> earliest time (ms)
-- ARGV
--   claim       text    the claim that holds render
--   size        bytes   of the artifact
--   sha256      text    of the artifact, hex
--   object_key  text    where it will lie in the store
--   warnings    text    for readers
-- USES
--   time
--   leases
--   events
--   runnable
--   progress
-- REPLY
--   ok        written, also when this claim had written it before
--   stop      nothing written, the task is being cancelled: release
--   lost      the claim does not hold render any more
if redis.call('HGET', K.task, 'recipe_claim') == A.claim then return {'ok'} end
if not held('render', A.claim) then return {'lost'} end
if cancel_requested() ~= '' then return {'stop'} end
local now = now_ms()
redis.call('HSET', K.task, 'phase', 'upload', 'file_size', A.size, 'sha256', A.sha256, 'object_key', A.object_key,
  'warnings', A.warnings, 'recipe_claim', A.claim)
drop_lease('render')
progressed(now, 0)
redis.call('ZADD', K.pending, 0, 'upload')
propose('upload', now)
note(now, 'rendered', A.size .. ' bytes')
return {'ok'}
