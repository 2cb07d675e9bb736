#!lua
-- Add to the audit of a task who did what to it. It expires with the task. A lost reply may leave a line twice.
-- State: any, unchanged. Cost: O(1).
-- KEYS
--   task      hash    the task
--   audit     list    the last entries: at|action|result|address|by
-- ARGV
--   entry     text    action|result|address|by
--   keep      count   entries that are kept
-- USES
--   time
-- REPLY
--   ok        added
--   gone      there is no such task: nothing written
local expiry = redis.call('HMGET', K.task, 'state', 'expires_at')
if not expiry[1] then return {'gone'} end
redis.call('RPUSH', K.audit, int(now_ms()) .. '|' .. A.entry)
redis.call('LTRIM', K.audit, -tonumber(A.keep), -1)
if expiry[2] then redis.call('PEXPIREAT', K.audit, expiry[2]) end
return {'ok'}
