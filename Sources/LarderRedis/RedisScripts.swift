/// What the server does in one step, in Lua.
///
/// Each script gets the same first keys (meta, stream, session, entry, lease, wait) and arguments (session, a new epoch, node, limit
/// of the stream).
///
/// - `meta` has an epoch, the number of removals of tags and of all (`r`), that of the last one of all (`a`) and of each tag (`t:TAG`).
///   An entry or a lease with a stamp of another epoch, or from before a removal that concerns it, counts as none. If it is
///   evicted, the next epoch begins, and no entry counts.
/// - `session` is the number of the last connection of the node: what another one has sent is refused.
/// - `stream` has the messages: who sends, the kind (`k` key, `t` tag, `a` all, `l` loaded, `h` hello) and the key or tag.
enum RedisScripts: Int, CaseIterable {
    case fetch, store, renew, remove, discard

    var text: String { Self.common + "\n" + body }

    private static let common = """
        local weeks = 28 * 24 * 3600 * 1000
        local function begin(e, r, a)
            redis.call('DEL', KEYS[1])
            redis.call('HSET', KEYS[1], 'e', e, 'r', r, 'a', a)
            redis.call('PEXPIRE', KEYS[1], weeks)
            return e, r, a
        end
        local function meta()
            local m = redis.pcall('HMGET', KEYS[1], 'e', 'r', 'a')
            if not m.err and m[1] and tonumber(m[2]) and tonumber(m[3]) then
                return m[1], tonumber(m[2]), tonumber(m[3])
            end
            return begin(ARGV[2], 0, 0)
        end
        local function stands(stamp, tags, e, a)
            local epoch, number = string.match(stamp, '^(.*):(%d+)$')
            local r = tonumber(number)
            if epoch ~= e or not r or r < a then return false end
            local at = 1
            while at <= #tags do
                local _, colon, count = string.find(tags, '^(%d+):', at)
                if not colon then return false end
                local last = redis.call('HGET', KEYS[1], 't:' .. string.sub(tags, colon + 1, colon + count))
                if last and r < tonumber(last) then return false end
                at = colon + count + 1
            end
            return true
        end
        local function tell(kind, text)
            local sent = redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'n', ARGV[3], 'k', kind, 'v', text)
            if type(sent) == 'table' and sent.err then
                if not string.find(sent.err, 'WRONGTYPE') then error(sent.err) end
                redis.call('DEL', KEYS[2])
                redis.call('XADD', KEYS[2], '*', 'n', ARGV[3], 'k', kind, 'v', text)
            end
            redis.call('PEXPIRE', KEYS[2], weeks)
        end
        local function isLate() return redis.call('GET', KEYS[3]) ~= ARGV[1] end
        """

    private var body: String {
        switch self {
        // 5: the token of a new lease, 6: its milliseconds or nothing.
        case .fetch:
            """
            local e, r, a = meta()
            local v = redis.pcall('HMGET', KEYS[4], 's', 'g', 'p', 'x', 'n', 'c')
            if v.err then redis.call('DEL', KEYS[4]) end
            if not v.err and v[1] then
                if stands(v[1], v[2] or '', e, a) then
                    return {'entry', redis.call('PTTL', KEYS[4]), v[2], v[3], v[4], v[5], v[6]}
                end
                redis.call('DEL', KEYS[4])
            end
            if ARGV[6] == '' then return {'missing'} end
            if redis.call('SET', KEYS[5], ARGV[5], 'NX', 'PX', ARGV[6]) then return {'lease', e .. ':' .. r} end
            redis.call('SET', KEYS[6], '1', 'PX', 2 * ARGV[6])
            return {'missing'}
            """
        // 5: the token and 6: the stamp of the lease, or nothing; 7: the key, 8: milliseconds, 9: the payload, 10: tags; then more fields.
        case .store:
            """
            if isLate() then return 'late' end
            local e, r, a = meta()
            local stored = 'yes'
            if ARGV[5] ~= '' then
                if redis.call('GET', KEYS[5]) ~= ARGV[5] then return 'no' end
                if not stands(ARGV[6], ARGV[10], e, a) then stored = 'no' end
            end
            -- A script may write all it wants once it has written: the first one is refused if the memory is full.
            redis.call('HSET', KEYS[1], 'r', r)
            redis.call('DEL', KEYS[5])
            local isAwaited = redis.call('DEL', KEYS[6]) == 1
            if stored == 'yes' then
                redis.call('DEL', KEYS[4])
                redis.call('HSET', KEYS[4], 's', e .. ':' .. r, 'g', ARGV[10], 'p', ARGV[9], unpack(ARGV, 11))
                redis.call('PEXPIRE', KEYS[4], ARGV[8])
                redis.call('PEXPIRE', KEYS[1], weeks)
            end
            if ARGV[5] == '' then tell('k', ARGV[7]) elseif isAwaited then tell('l', ARGV[7]) end
            return stored
            """
        // 5: the token, 6: milliseconds or nothing, 7: the key.
        case .renew:
            """
            if redis.call('GET', KEYS[5]) ~= ARGV[5] then return 'no' end
            if ARGV[6] ~= '' then
                redis.call('PEXPIRE', KEYS[5], ARGV[6])
            else
                redis.call('DEL', KEYS[5])
                if redis.call('DEL', KEYS[6]) == 1 then tell('l', ARGV[7]) end
            end
            return 'yes'
            """
        // 5: the checksum of the entry.
        case .discard:
            """
            if (redis.call('HGET', KEYS[4], 'c') or '') == ARGV[5] then redis.call('DEL', KEYS[4]) end
            return 'yes'
            """
        // From 5 on: the kind and the text of each removal. The keys from 4 on are the entry, lease and wait of each key.
        case .remove:
            """
            if isLate() then return 'late' end
            local e, r, a = meta()
            local key = 4
            for i = 5, #ARGV, 2 do
                if ARGV[i] == 'k' then
                    redis.call('DEL', KEYS[key], KEYS[key + 1], KEYS[key + 2])
                    key = key + 3
                elseif ARGV[i] == 't' then
                    r = r + 1
                    redis.call('HSET', KEYS[1], 'r', r, 't:' .. ARGV[i + 1], r)
                else
                    e, r, a = begin(e, r + 1, r + 1)
                end
                tell(ARGV[i], ARGV[i + 1])
            end
            if redis.call('HLEN', KEYS[1]) > 10003 then begin(e, r + 1, r + 1) end
            redis.call('PEXPIRE', KEYS[1], weeks)
            return 'yes'
            """
        }
    }
}
