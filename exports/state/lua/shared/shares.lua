-- How much of the lanes' time each owner has had, by weight. Who had least is proposed first; an owner that comes back
-- begins at the clock, the share of whoever was served last, so that nobody saves up turns by being away.
-- KEYS
--   shares    zset    owner -> ms of a lane, by weight; '' -> the clock. Who is behind the clock is forgotten
-- ARGV
--   owner     text    whose task it is
--   weight    count   of the owner
-- USES
--   time
local CLAIM_MS = 100

local function share_of(owner)
  return math.max(number_of(redis.call('ZSCORE', K.shares, owner) or ''), number_of(redis.call('ZSCORE', K.shares, '') or ''))
end

local function use_share(ms)
  redis.call('ZADD', K.shares, string.format('%.3f', share_of(A.owner) + ms / tonumber(A.weight)), A.owner)
end

-- The next turn is this owner's. Two claims at one moment must differ already, before either has worked.
local function take_turn()
  local clock = string.format('%.3f', share_of(A.owner))
  redis.call('ZADD', K.shares, clock, '')
  redis.call('ZREMRANGEBYSCORE', K.shares, '-inf', '(' .. clock)
  use_share(CLAIM_MS)
end
