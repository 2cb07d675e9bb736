#!lua
-- Keep one event of a task for one endpoint, once, with the bytes that every attempt sends.
-- Cost: O(log callbacks of the endpoint).
-- KEYS
--   task      hash  the task
-- ARGV
--   event     text   <epoch>-<event>
--   endpoint  text   id of the endpoint
--   body      text   what is sent
--   limit     count  attempts
--   keep_ms   ms     an endpoint that nobody sends to any more is forgotten after this
-- USES
--   callbacks
-- REPLY
--   kept      it will be sent
--   known     it was kept before
--   disabled  the endpoint has answered 410 for this task
--   gone      there is no such task
local t = redis.call('HMGET', K.task, 'state', 'expires_at')
if not t[1] then return {'gone'} end
if redis.call('HEXISTS', K.callbacks, A.callback) == 1 then return {'known'} end
if redis.call('HEXISTS', K.callbacks, 'gone|' .. A.endpoint) == 1 then return {'disabled'} end
local now = now_ms()
redis.call('HSETNX', K.callbacks, 'body|' .. A.event, A.body)
local c = {state = 'waiting', attempts = 0, tries = 0, limit = tonumber(A.limit), multiplier = '', replays = 0}
c.kept, c.claim = int(now), ''
write_callback(c, now)
if t[2] then redis.call('PEXPIREAT', K.callbacks, t[2]) end
redis.call('PEXPIRE', K.callbacks_due, A.keep_ms)
return {'kept'}
