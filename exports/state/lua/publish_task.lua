#!lua flags=allow-oom
-- The fenced end: the artifact is in the store.
-- State: running -> succeeded | cancelled. Cost: O(shards).
-- ARGV
--   claim     text    the claim that holds the upload
-- USES
--   endings
-- REPLY
--   succeeded  published, also when this claim had published it before
--   cancelled  a cancel had been accepted: the artifact must go
--   lost       the claim does not hold the upload any more
if redis.call('HGET', K.task, 'publish_claim') == A.claim then return {'succeeded'} end
if not held('upload', A.claim) then return {'lost'} end
local now = now_ms()
if cancel_requested() ~= '' then return {end_task('cancelled', now, '')} end
local rows = 0
for _, text in ipairs(redis.call('HVALS', K.shards)) do rows = rows + parse_record(text).rows end
redis.call('HSET', K.task, 'rows', int(rows), 'publish_claim', A.claim)
return {end_task('succeeded', now, int(rows) .. ' rows')}
