-- The end of a task: no lease left, one absolute expiry on every key, and what has to be done after it.
-- KEYS
--   plan      hash    constants of the shards
--   pending   zset    step -> earliest time (ms)
--   segments  hash    segment -> committed part
--   done      set     finished shards
--   parts     hash    '' -> the upload, part number -> part
--   audit     list    who did what
--   callbacks hash    what is told of the task
--   attempts  hash    how it was told
--   request   string  the requestId's task
--   cleanup   zset    <task>|<owner digest> -> when to clean up (ms)
--   notify    zset    task id -> ended (ms)
-- ARGV
--   keep_ms         ms      how long an ended task is kept
--   cleanup_member  text    the task's name in `cleanup`
-- USES
--   time
--   records
--   leases
--   events
--   runnable
--   enter
--   buckets
local DURATION_BUCKETS_MS = {100, 250, 500, 1000, 2500, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000}

-- One observation an epoch, at its first end, if it had started.
local function observe_duration(now)
  local t = redis.call('HMGET', K.task, 'started_at', 'epoch', 'observed_epoch', 'format')
  if not t[1] or t[1] == '' or t[2] == t[3] then return end
  observe('duration:' .. t[4], now - tonumber(t[1]), DURATION_BUCKETS_MS)
  redis.call('HSET', K.task, 'observed_epoch', t[2])
end

-- Every key of the task that outlives its end for a while.
local OWN = {K.task, K.plan, K.shards, K.pending, K.segments, K.done, K.parts, K.events, K.audit, K.callbacks, K.attempts,
  K.request}

local function end_task(state, now, detail)
  for _, step in ipairs(redis.call('HKEYS', K.running)) do
    drop_lease(step)
    redis.call('ZADD', K.pending, int(now), step)
  end
  propose(nil, now)
  enter(state, now)
  observe_duration(now)
  redis.call('HSET', K.task, 'finished_at', int(now), 'cancel_requested_at', '')
  note(now, state, detail)
  if state ~= 'failed' then
    redis.call('DEL', K.plan, K.pending, K.segments, K.done, K.parts)
  end
  local expiry = now + tonumber(A.keep_ms)
  redis.call('HSET', K.task, 'expires_at', int(expiry))
  for _, key in ipairs(OWN) do
    redis.call('PEXPIREAT', key, int(expiry))
  end
  redis.call('ZADD', K.notify, int(now), A.id)
  redis.call('ZADD', K.cleanup, state == 'failed' and int(expiry) or int(now), A.cleanup_member)
  return state
end

-- With a cancel accepted, a failure ends as cancelled.
local function fail(step, code, retryable, attempts, now)
  if cancel_requested() ~= '' then return end_task('cancelled', now, '') end
  local phase = redis.call('HGET', K.task, 'phase')
  local r = phase == 'fetch' and read_record(step) or nil
  redis.call('HSET', K.task,
    'error_code', code, 'error_phase', phase, 'error_shard', r and step or '', 'error_page', r and int(r.pages + 1) or '0',
    'error_cursor', r and r.cursor or '', 'error_attempts', int(attempts), 'error_retryable', retryable)
  return end_task('failed', now, code .. ' ' .. step)
end

-- A step goes back to where it waits; the last one to go completes a cancel.
local function put_back(step, due, now)
  drop_lease(step)
  redis.call('ZADD', K.pending, int(due), step)
  if cancel_requested() ~= '' and live_leases(now) == 0 then
    return end_task('cancelled', now, '')
  end
end
