-- Where a task is proposed to workers: under the class of its next step, or nowhere.
-- KEYS
--   runnable_plan    zset    task id -> last claim (ms)
--   runnable_shard   zset    same
--   runnable_render  zset    same
--   runnable_upload  zset    same
-- ARGV
--   id        text    task id
-- The class of the next step, by the phase.
local function class_of(phase)
  return phase == '' and 'plan' or phase == 'fetch' and 'shard' or phase
end

local function propose(step, now)
  for _, name in ipairs({'plan', 'shard', 'render', 'upload'}) do
    if name == step then
      redis.call('ZADD', K['runnable_' .. name], int(now), A.id)
    else
      redis.call('ZREM', K['runnable_' .. name], A.id)
    end
  end
end
