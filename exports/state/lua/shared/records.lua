-- A shard's record: planned|rows|seen|pages|page_rows|attempts|recoveries|drift|cursor
-- planned: rows counted at plan. rows: committed. seen: the most rows committed in this epoch.
-- drift: '' until the shard is done, then 'exact', 'changed', 'unknown' or a signed difference.
-- The cursor stands last: it may hold any character.
-- KEYS
--   shards    hash    shard id -> record
local RECORD = '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)|(.*)$'

local function parse_record(text)
  local r = {}
  r.planned, r.rows, r.seen, r.pages, r.page_rows, r.attempts, r.recoveries, r.drift, r.cursor = string.match(text, RECORD)
  for _, name in ipairs({'planned', 'rows', 'seen', 'pages', 'page_rows', 'attempts', 'recoveries'}) do
    r[name] = tonumber(r[name])
  end
  return r
end

local function read_record(shard)
  local text = redis.call('HGET', K.shards, shard)
  return text and parse_record(text)
end

local function write_record(shard, r)
  redis.call('HSET', K.shards, shard, table.concat({
    int(r.planned), int(r.rows), int(r.seen), int(r.pages), int(r.page_rows), int(r.attempts), int(r.recoveries),
    r.drift, r.cursor,
  }, '|'))
end
