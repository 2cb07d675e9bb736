#!lua
-- Claim one step of a class under a lease, with the next fence. Repeated with the same claim: the same answer.
-- State: queued | running -> running. Cost: O(leases of the task + log).
-- KEYS
--   task           hash    the task
--   plan           hash    shard id -> constants
--   pending        zset    step -> earliest time (ms)
-- ARGV
--   class        text    plan, shard, render or upload
--   claim        text    id of this claim, fresh for each
--   worker       text    who claims
--   task_limit   count   most leases of the task
--   budget       count   most leases that read the database, over all tasks
--   owner_limit  count   most running tasks of the owner
--   digest       text    the worker's specification of this task
--   spool        text    the worker's
--   guard_leases   count   most such leases before a step of a slower queue may join while the database is spared
--   guard_page_ms  ms      a page that takes no longer never slows anybody down
-- USES
--   time
--   records
--   leases
--   guard
--   events
--   runnable
--   enter
--   progress
-- REPLY
--   ok           step, fence, record or '', constants or '', 1 if it starts the task, then the task's fields and values
--   full         no place left under one of the limits; a task that its owner's limit keeps queued is proposed last
--   wait         ms until the first step is due, or until the database may be asked for more again
--   done         no step of this class is left
--   stop         the task has ended or is being cancelled
--   elsewhere    the task lies on another spool
--   foreign      the task was planned with another specification; others are proposed first from now on
--   gone         there is no such task
local function answer(step, fence, starts)
  local record = redis.call('HGET', K.shards, step) or ''
  local constants = redis.call('HGET', K.plan, step) or ''
  return {'ok', step, fence, record, constants, starts, unpack(redis.call('HGETALL', K.task))}
end

local function first_due(now)
  local first = redis.call('ZRANGE', K.pending, 0, 0, 'WITHSCORES')
  if not first[1] then return nil, {'done'} end
  if tonumber(first[2]) > now then return nil, {'wait', int(tonumber(first[2]) - now)} end
  return first[1]
end

local SPARE_MS = 500

-- The refusal where as many steps read the database as may. Where pages are slow, only those who want little join them.
local function database_is_full(now, kind, queue)
  local readers = redis.call('ZCOUNT', K.leases, '(' .. int(now), '+inf')
  if readers >= tonumber(A.budget) then return {'full'} end
  local yields = queue == 'normal' or queue == 'slow'
  if yields and readers >= tonumber(A.guard_leases) and database_is_slow(kind, tonumber(A.guard_page_ms)) then
    return {'wait', int(SPARE_MS)}
  end
end

local t = redis.call('HMGET', K.task, 'state', 'phase', 'digest', 'kind', 'queue', 'spool')
local state, phase = t[1], t[2]
if not state then return {'gone'} end
local now = now_ms()
local held_steps = redis.call('HGETALL', K.running)
for i = 1, #held_steps, 2 do
  local l = parse_lease(held_steps[i + 1])
  if l.claim == A.claim then return answer(held_steps[i], l.fence, '0') end
end
if (state ~= 'queued' and state ~= 'running') or cancel_requested() ~= '' then return {'stop'} end
local class = class_of(phase)
if class ~= A.class then return {'done'} end
if (t[6] or '') ~= '' and t[6] ~= A.spool then return {'elsewhere'} end
if class ~= 'plan' and t[3] ~= A.digest then
  redis.call('HSETNX', K.task, 'foreign_since', int(now))
  propose(class, now)
  return {'foreign'}
end
if state == 'queued' and redis.call('ZCARD', K.owner_running) >= tonumber(A.owner_limit) then
  propose(class, now)
  return {'full'}
end
if #held_steps / 2 >= tonumber(A.task_limit) then return {'full'} end
local reads = class == 'plan' or class == 'shard'
local full = reads and database_is_full(now, t[4], t[5])
if full then return full end
local step, refusal = first_due(now)
if not step then return refusal end

local fence = int(redis.call('HINCRBY', K.task, 'fence', 1))
redis.call('ZREM', K.pending, step)
redis.call('HDEL', K.task, 'foreign_since')
take_turn()
write_lease(step, {fence = fence, claim = A.claim, begun = '0', worker = A.worker}, now)
if state == 'queued' then
  enter('running', now)
  redis.call('HSET', K.task, 'started_at', int(now))
  begin_progress(now)
  note(now, 'running', '')
end
propose(class, now)
return answer(step, fence, state == 'queued' and '1' or '0')
