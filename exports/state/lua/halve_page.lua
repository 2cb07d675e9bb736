#!lua
-- Read smaller pages of a shard from now on; the smallest size failing too fails the task. Uses up no attempt.
-- State: running -> running | failed | cancelled. Cost: O(1).
-- ARGV
--   step       text    shard id
--   claim      text    the claim that holds it
--   page_rows  rows    the size that was too large; another size means that this was halved already
--   smallest   rows    no page is made smaller
-- USES
--   endings
-- REPLY
--   ok         rows of a page from now on
--   failed     the task has failed
--   cancelled  the task is cancelled
--   lost       the claim does not hold the shard any more
if not held(A.step, A.claim) then return {'lost'} end
local r = read_record(A.step)
local smallest = tonumber(A.smallest)
if r.page_rows ~= tonumber(A.page_rows) then return {'ok', int(r.page_rows)} end
if r.page_rows <= smallest then return {fail(A.step, 'page_too_large', '0', r.attempts + 1, now_ms())} end
r.page_rows = math.max(smallest, math.floor(r.page_rows / 2))
write_record(A.step, r)
redis.call('HINCRBY', K.metrics, 'retries:page_too_large', 1)
return {'ok', int(r.page_rows)}
