-- How long full pages take, of each kind, against what is usual; the database is spared while they take twice as long.
-- What is usual is the mean of the first pages, and follows slowly: a load that stays becomes usual in the end.
-- KEYS
--   task      hash    the task
--   latency   hash    <kind>|mean, <kind>|usual (ms) and <kind>|pages (count, as far as it matters)
-- USES
--   time
local MEAN_PAGES, USUAL_PAGES, FIRST_PAGES = 16, 10000, 64

local function latency_of(kind)
  local l = redis.call('HMGET', K.latency, kind .. '|mean', kind .. '|usual', kind .. '|pages')
  return number_of(l[1] or ''), number_of(l[2] or ''), number_of(l[3] or '')
end

local function note_latency(ms)
  local kind = redis.call('HGET', K.task, 'kind')
  local mean, usual, pages = latency_of(kind)
  local first = pages < FIRST_PAGES
  pages = first and pages + 1 or pages
  mean = mean + (ms - mean) / math.min(pages, MEAN_PAGES)
  usual = usual + (ms - usual) / (first and pages or USUAL_PAGES)
  redis.call('HSET', K.latency, kind .. '|mean', string.format('%.3f', mean), kind .. '|usual', string.format('%.3f', usual),
    kind .. '|pages', int(pages))
end

local function database_is_slow(kind, least_ms)
  local mean, usual, pages = latency_of(kind)
  return pages == FIRST_PAGES and mean >= least_ms and mean > 2 * usual
end
