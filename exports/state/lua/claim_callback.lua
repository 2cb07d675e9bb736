#!lua
-- Begin an attempt at a callback that is due, under a lease, and note it in the audit. A repeated claim: the same answer.
-- Cost: O(log callbacks of the endpoint).
-- KEYS
--   task              hash  the task
--   attempts          hash  <callback>|<number> -> attempt
--   callbacks_failed  zset  <task>|<callback> -> failed (ms)
-- ARGV
--   event     text   <epoch>-<event>
--   endpoint  text   id of the endpoint
--   claim     text   id of this claim, fresh for each
--   lease_ms  ms     after this time it is due again, should nobody tell how the attempt ended
--   kept      count  attempts that the audit keeps
-- USES
--   callbacks
-- REPLY
--   ok        number of the attempt, tries, multiplier or '', body, traceparent
--   wait      not due, or another claim holds it
--   done      it waits no more, or is there no longer
--   failed    its attempts are used up, the last one by a sender that died, or the endpoint has answered 410
local c = read_callback()
if not c or c.state ~= 'waiting' then
  redis.call('ZREM', K.callbacks_due, A.id .. '|' .. A.callback)
  return {'done'}
end
local function answer()
  return {'ok', int(c.attempts), int(c.tries), c.multiplier, redis.call('HGET', K.callbacks, 'body|' .. A.event),
    redis.call('HGET', K.task, 'traceparent')}
end
if c.claim == A.claim then return answer() end
local now = now_ms()
if tonumber(c.due) > now then return {'wait'} end
if c.tries >= c.limit or redis.call('HEXISTS', K.callbacks, 'gone|' .. A.endpoint) == 1 then
  c.state = 'failed'
  redis.call('ZADD', K.callbacks_failed, int(now), A.id .. '|' .. A.callback)
  write_callback(c)
  return {'failed'}
end
c.attempts, c.tries, c.claim = c.attempts + 1, c.tries + 1, A.claim
write_callback(c, now + tonumber(A.lease_ms))
redis.call('HSET', K.attempts, A.callback .. '|' .. int(c.attempts), int(now) .. '||||||')
redis.call('HDEL', K.attempts, A.callback .. '|' .. int(c.attempts - tonumber(A.kept)))
local expiry = redis.call('HGET', K.task, 'expires_at')
if expiry then redis.call('PEXPIREAT', K.attempts, expiry) end
return answer()
