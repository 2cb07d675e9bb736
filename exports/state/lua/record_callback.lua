#!lua flags=allow-oom
-- Note how an attempt ended, and when the callback is tried again, if it is.
-- Cost: O(log callbacks of the endpoint).
-- KEYS
--   attempts          hash  <callback>|<number> -> attempt
--   callbacks_failed  zset  <task>|<callback> -> failed (ms)
--   metrics           hash  counters
-- ARGV
--   endpoint  text  id of the endpoint
--   claim     text  the claim that made the attempt
--   number    count the attempt's number
--   result    text  delivered, gone or what failed
--   status    code  of the answer, 0 without one
--   duration  ms    of the request
--   reason    text  why it failed, without a bar
--   body      text  the beginning of the answer
--   pause_ms  ms    until the next attempt
--   keep_ms   ms    failed callbacks are listed for this time
-- USES
--   callbacks
-- REPLY
--   delivered  done
--   waiting    it will be tried again
--   failed     it will not
--   lost       another claim or a replay has taken over: only the audit is written
--   gone       the callback is there no longer
local c = read_callback()
if not c then return {'gone'} end
local field = A.callback .. '|' .. A.number
local attempt = redis.call('HGET', K.attempts, field) or ''
local now = now_ms()
if string.sub(attempt, -6) == '||||||' then
  redis.call('HSET', K.attempts, field, table.concat({
    string.match(attempt, '^%d+'), int(now), A.status, A.duration, A.result, A.reason, A.body}, '|'))
  redis.call('HINCRBY', K.metrics, 'callback:' .. A.result, 1)
elseif c.claim == A.claim then
  return {c.state}
end
if A.result == 'gone' then redis.call('HSET', K.callbacks, 'gone|' .. A.endpoint, '1') end
if c.claim ~= A.claim then return {'lost'} end
if A.result == 'delivered' then
  c.state = 'delivered'
elseif A.result == 'gone' or c.tries >= c.limit then
  c.state = 'failed'
  redis.call('ZADD', K.callbacks_failed, int(now), A.id .. '|' .. A.callback)
  redis.call('ZREMRANGEBYSCORE', K.callbacks_failed, '-inf', int(now - tonumber(A.keep_ms)))
end
write_callback(c, c.state == 'waiting' and now + tonumber(A.pause_ms) or nil)
redis.call('PEXPIRE', K.callbacks_due, A.keep_ms)
return {c.state}
