#!lua
-- Send a callback anew, whatever became of it, the endpoint's 410 included, and note it. Repeated with the same call: once.
-- Cost: O(log callbacks of the endpoint).
-- KEYS
--   callbacks_failed  zset  <task>|<callback> -> failed (ms)
--   metrics           hash  counters
-- ARGV
--   endpoint    text   id of the endpoint
--   call        text   id of this call, fresh for each
--   by          text   who asked, and why
--   limit       count  attempts
--   multiplier  number of each pause against the one before it
--   keep_ms     ms     an endpoint that nobody sends to any more is forgotten after this
-- USES
--   callbacks
--   events
-- REPLY
--   ok    it is due now
--   gone  there is no such callback
local c = read_callback()
if not c then return {'gone'} end
if c.claim == A.call then return {'ok'} end
c.state, c.tries, c.limit, c.multiplier = 'waiting', 0, tonumber(A.limit), A.multiplier
c.replays, c.claim = c.replays + 1, A.call
local now = now_ms()
write_callback(c, now)
redis.call('PEXPIRE', K.callbacks_due, A.keep_ms)
redis.call('HDEL', K.callbacks, 'gone|' .. A.endpoint)
redis.call('ZREM', K.callbacks_failed, A.id .. '|' .. A.callback)
redis.call('HINCRBY', K.metrics, 'callback_replays', 1)
note(now, 'replayed', A.by)
return {'ok'}
