-- A callback's record: state|attempts|tries|limit|multiplier|replays|kept|due|claim
-- state: waiting, delivered or failed. attempts: all so far. tries: since it was kept or replayed, at most `limit`.
-- multiplier: of the pauses after a replay, else ''. kept, due: ms. claim: of the attempt that counts, or of the replay.
-- An attempt: sent|responded|status|duration|result|reason|body. The last six are empty until it has ended.
-- KEYS
--   callbacks      hash  <epoch>-<event>-<endpoint> -> record; body|<epoch>-<event> -> text; gone|<endpoint> -> 1
--   callbacks_due  zset  <task>|<callback> -> next attempt (ms), the end of its lease while one is under way
-- ARGV
--   id        text  task id
--   callback  text  <epoch>-<event>-<endpoint>
-- USES
--   time
local function read_callback()
  local text = redis.call('HGET', K.callbacks, A.callback)
  if not text then return end
  local c = {}
  c.state, c.attempts, c.tries, c.limit, c.multiplier, c.replays, c.kept, c.due, c.claim =
    string.match(text, '^(%a+)|(%d+)|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|([^|]*)$')
  for _, name in ipairs({'attempts', 'tries', 'limit', 'replays'}) do c[name] = tonumber(c[name]) end
  return c
end

-- due: when it is looked at next; without one it waits no more.
local function write_callback(c, due)
  if due then
    c.due = int(due)
    redis.call('ZADD', K.callbacks_due, c.due, A.id .. '|' .. A.callback)
  else
    redis.call('ZREM', K.callbacks_due, A.id .. '|' .. A.callback)
  end
  redis.call('HSET', K.callbacks, A.callback, table.concat({
    c.state, int(c.attempts), int(c.tries), int(c.limit), c.multiplier, int(c.replays), c.kept, c.due, c.claim,
  }, '|'))
end
