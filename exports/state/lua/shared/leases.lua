-- A lease: expiry|fence|claim|begun|worker (expiry in ms of the server's clock).
-- KEYS
--   task      hash    the task
--   running   hash    step -> lease
--   leases    zset    <task>|<step> -> expiry, the steps of all tasks that read the database
-- ARGV
--   id        text    task id
--   lease_ms  ms      life of a lease
-- USES
--   time
--   shares
local function parse_lease(text)
  local l = {}
  l.expiry, l.fence, l.claim, l.begun, l.worker = string.match(text, '^(%d+)|(%d+)|([^|]*)|(%d)|(.*)$')
  l.expiry = tonumber(l.expiry)
  return l
end

-- The lease of a step if this claim still holds it. One that has run out but was not taken over still counts:
-- nobody else owns the step.
local function held(step, claim)
  local text = redis.call('HGET', K.running, step)
  local l = text and parse_lease(text)
  return l and l.claim == claim and l or nil
end

-- Run time: between two signs of life, while somebody held a step. A longer silence is no work.
local function count_run_time(now)
  local t = redis.call('HMGET', K.task, 'run_ms', 'run_at')
  local gap = now - number_of(t[2] or '')
  if redis.call('HLEN', K.running) == 0 or gap > tonumber(A.lease_ms) then gap = 0 end
  redis.call('HSET', K.task, 'run_ms', int(number_of(t[1] or '') + gap), 'run_at', int(now))
end

-- Give a lease its full life, and its owner an account of the time since it had that last.
local function write_lease(step, l, now)
  count_run_time(now)
  if l.expiry then use_share(math.max(0, now - l.expiry + tonumber(A.lease_ms))) end
  l.expiry = now + tonumber(A.lease_ms)
  redis.call('HSET', K.running, step, table.concat({int(l.expiry), l.fence, l.claim, l.begun, l.worker}, '|'))
  if step ~= 'render' and step ~= 'upload' then
    redis.call('ZADD', K.leases, int(l.expiry), A.id .. '|' .. step)
  end
end

local function drop_lease(step)
  redis.call('HDEL', K.running, step)
  redis.call('ZREM', K.leases, A.id .. '|' .. step)
end

local function cancel_requested()
  return redis.call('HGET', K.task, 'cancel_requested_at') or ''
end

local function live_leases(now)
  local live = 0
  for _, text in ipairs(redis.call('HVALS', K.running)) do
    if parse_lease(text).expiry > now then live = live + 1 end
  end
  return live
end
