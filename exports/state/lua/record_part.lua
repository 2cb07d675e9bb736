#!lua
-- Record a part that the store has taken. Renews the lease; more parts than ever before forget failed tries and lost workers.
-- State: running -> running. Cost: O(log leases).
-- KEYS
--   parts     hash    '' -> the upload, part number -> part
-- ARGV
--   claim     text    the claim that holds the upload
--   lease_ms  ms      life of the lease
--   upload    text    the upload that the part belongs to, as it was bound
--   number    count   of the part, from 1
--   part      text    ETag|MD5
-- USES
--   time
--   leases
--   progress
-- REPLY
--   ok        recorded
--   stop      recorded; the task is being cancelled: release
--   lost      nothing written: the claim does not hold the upload any more, or another upload was begun
local l = held('upload', A.claim)
if not l or redis.call('HGET', K.parts, '') ~= A.upload then return {'lost'} end
redis.call('HSET', K.parts, A.number, A.part)
local count = redis.call('HLEN', K.parts)
-- Only growth counts: a store that forgets its uploads again and again must use up the tries.
if count > number_of(redis.call('HGET', K.task, 'most_parts') or '') then
  redis.call('HSET', K.task, 'most_parts', count)
  redis.call('HDEL', K.task, 'attempts_upload', 'recoveries_upload')
end
local now = now_ms()
write_lease('upload', l, now)
progressed(now, 0)
return {cancel_requested() ~= '' and 'stop' or 'ok'}
