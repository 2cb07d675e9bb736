#!lua flags=no-writes
-- Tasks with a step of a class, in the order in which a worker should ask for it: a stalled one first, then by the rank
-- that the worker gives to their queues, by what their owners have had, and by when they were served last. Looks at a
-- bounded number of tasks. It names the keys of tasks itself: cluster mode is refused anyway. Cost: O(scan log scan).
-- KEYS
--   runnable_plan    zset    task id -> last claim (ms)
--   runnable_shard   zset    same
--   runnable_render  zset    same
--   runnable_upload  zset    same
-- ARGV
--   class     text    plan, shard, render or upload
--   prefix    text    what stands before the id in the key of a task
--   fast      count   rank of the queue, or '' for none of it
--   normal    count   same
--   slow      count   same
--   spool     text    only tasks on this spool and those that are not planned; '' for all
--   scan      count   tasks to look at
--   limit     count   tasks to answer
-- USES
--   shares
-- REPLY
--   ok        id, queue ('' before the plan) and spool of each
local ranks = {[''] = 0, fast = tonumber(A.fast), normal = tonumber(A.normal), slow = tonumber(A.slow)}

local function before(a, b)
  if a.stalled ~= b.stalled then return a.stalled end
  if a.rank ~= b.rank then return a.rank < b.rank end
  if a.share ~= b.share then return a.share < b.share end
  if a.at ~= b.at then return a.at < b.at end
  return a.id < b.id
end

local tasks, shares = {}, {}
local found = redis.call('ZRANGE', K['runnable_' .. A.class], 0, A.scan - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local t = redis.call('HMGET', A.prefix .. found[i], 'owner', 'queue', 'spool')
  local owner, queue, spool = t[1] or '', t[2] or '', t[3] or ''
  shares[owner] = shares[owner] or share_of(owner)
  if ranks[queue] and (A.spool == '' or spool == '' or spool == A.spool) then
    local at = tonumber(found[i + 1])
    tasks[#tasks + 1] = {id = found[i], queue = queue, spool = spool, stalled = at == 0, rank = ranks[queue],
      share = shares[owner], at = at}
  end
end
table.sort(tasks, before)
local reply = {'ok'}
for i = 1, math.min(#tasks, tonumber(A.limit)) do
  local task = tasks[i]
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = task.id, task.queue, task.spool
end
return reply
