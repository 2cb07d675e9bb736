#!lua
-- Bind the parts of a task to a new upload; those of an earlier one are forgotten.
-- State: running -> running. Cost: O(parts).
-- KEYS
--   parts     hash    '' -> the upload, part number -> part
-- ARGV
--   claim     text    the claim that holds the upload
--   upload    text    size of a part|digest of the artifact|object key|the store's id
-- USES
--   leases
-- REPLY
--   ok        bound
--   stop      nothing written, the task is being cancelled: release
--   lost      nothing written: the claim does not hold the upload any more
if not held('upload', A.claim) then return {'lost'} end
if cancel_requested() ~= '' then return {'stop'} end
redis.call('DEL', K.parts)
redis.call('HSET', K.parts, '', A.upload)
return {'ok'}
