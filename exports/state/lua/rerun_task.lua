#!lua
-- Queue a failed task again: from its cursors, without some shards' rows, or from scratch.
-- State: failed -> queued, epoch + 1. Cost: O(shards).
-- ARGV
--   digest     text    today's specification of this task
--   scratch    0 or 1  1: forget plan, cursors and segments
--   call       text    id of this call, fresh for each
--   by         text    who asked, and why
--   page_rows  rows    of a page from now on, in shards that are not done; 0: as they are
--   shards*    text    ids of shards to read again from their first row
-- USES
--   endings
--   reopening
-- REPLY
--   ok        queued, also when this call had queued it before
--   refused   the task has not failed
--   foreign   the specification has changed: only from scratch
--   lost      a key of the task is gone: only from scratch
--   unknown   one of the shards is not the task's
--   gone      there is no such task
local function forget_plan()
  redis.call('DEL', K.plan, K.shards, K.pending, K.segments, K.done, K.parts)
  redis.call('HDEL', K.task, 'digest', 'as_of', 'file_name', 'plan_claim', 'recipe_claim', 'file_size',
    'sha256', 'object_key', 'warnings', 'shard_count', 'queue', 'spool')
  redis.call('HSET', K.task, 'phase', '')
  redis.call('ZADD', K.pending, 0, 'plan')
end

local function page_rows_of(r)
  return A.page_rows ~= '0' and r.drift == '' and tonumber(A.page_rows) or r.page_rows
end

local function forget_attempts()
  local all = redis.call('HGETALL', K.shards)
  for i = 1, #all, 2 do
    local r = parse_record(all[i + 1])
    r.attempts, r.recoveries, r.seen, r.page_rows = 0, 0, r.rows, page_rows_of(r)
    write_record(all[i], r)
  end
  for _, step in ipairs(redis.call('ZRANGE', K.pending, 0, -1)) do redis.call('ZADD', K.pending, 0, step) end
end

-- Without all rows there is nothing to put together yet.
local function read_again(shards)
  if #shards == 0 then return end
  reopen(shards)
  redis.call('ZREM', K.pending, 'render', 'upload')
  redis.call('HSET', K.task, 'phase', 'fetch')
end

-- Whether every key that the cursors stand in is still there.
local function complete(shard_count)
  return redis.call('EXISTS', K.request) == 1 and redis.call('HLEN', K.shards) == shard_count
    and redis.call('HLEN', K.plan) >= shard_count
end

local t = redis.call('HMGET', K.task, 'state', 'phase', 'digest', 'shard_count')
if not t[1] then return {'gone'} end
if t[1] == 'queued' and redis.call('HGET', K.task, 'rerun_call') == A.call then return {'ok'} end
if t[1] ~= 'failed' then return {'refused', t[1]} end
local planned = t[2] ~= ''
if A.scratch == '0' and planned then
  if t[3] ~= A.digest then return {'foreign'} end
  if not complete(number_of(t[4])) then return {'lost'} end
end
for _, shard in ipairs(A.shards) do
  if redis.call('HEXISTS', K.shards, shard) == 0 then return {'unknown', shard} end
end
local now = now_ms()
if A.scratch == '1' then
  forget_plan()
else
  read_again(A.shards)
  forget_attempts()
end
for _, key in ipairs(OWN) do
  redis.call('PERSIST', key)
end
redis.call('HDEL', K.task, 'error_code', 'error_phase', 'error_shard', 'error_page', 'error_cursor', 'error_attempts',
  'error_retryable', 'attempts_plan', 'attempts_render', 'attempts_upload', 'recoveries_plan', 'recoveries_render',
  'recoveries_upload', 'most_parts', 'reopens', 'expires_at', 'foreign_since', 'stranded_since', 'run_ms', 'stalled_at')
redis.call('HSET', K.task, 'started_at', '', 'finished_at', '', 'rerun_call', A.call)
redis.call('HINCRBY', K.task, 'epoch', 1)
redis.call('ZREM', K.cleanup, A.cleanup_member)
redis.call('ZREM', K.notify, A.id)
enter('queued', now)
propose(class_of(redis.call('HGET', K.task, 'phase')), now)
note(now, 'rerun', (A.scratch == '1' and 'from scratch ' or '') .. A.by)
return {'ok'}
