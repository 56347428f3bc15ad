import { api } from '../../api.js';
import { cell, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { List } from '../../parts/table.js';
import { mayChange } from '../../session.js';

interface Session {
  id: string;
  createdAt: string;
  usedAt: string;
  ip: string | null;
  userAgent: string | null;
}

/** Where a user is signed in. */
export function UserSessions({ path }: { path: string }) {
  const sessions = useLoad<{ items: Session[] }>(`${path}/sessions`);
  const end = (rest: string, text: string): Promise<void> =>
    attempt(async () => {
      await api('DELETE', `${path}/sessions${rest}`);
      sessions.reload();
      return text;
    });
  return (
    <>
      <h3>Sessions</h3>
      <List
        label="Sessions"
        of={sessions}
        keyOf={(session) => session.id}
        empty="Signed in nowhere."
        columns={[
          { name: 'Last used', show: ({ usedAt }) => moment(usedAt) },
          { name: 'Signed in', show: ({ createdAt }) => moment(createdAt) },
          { name: 'From', show: ({ ip }) => ip ?? '' },
          { name: 'With', show: ({ userAgent }) => cell(userAgent ?? '', 40) },
          {
            name: 'End',
            show: (session) =>
              mayChange.value ? (
                <button
                  class="small"
                  aria-label={`End the session of ${moment(session.createdAt)}`}
                  onClick={() => void end(`/${session.id}`, 'The session has ended')}
                >
                  End
                </button>
              ) : null,
          },
        ]}
      />
      {mayChange.value && (sessions.data?.items.length ?? 0) > 0 && (
        <p class="row">
          <button onClick={() => void end('', 'All sessions have ended')}>End all sessions</button>
        </p>
      )}
    </>
  );
}

/** Accounts of other services that open this one; nothing where there are none. */
export function UserIdentities({ path }: { path: string }) {
  const { data } = useLoad<{ items: { provider: string; linkedAt: string }[] }>(`${path}/identities`);
  if (!data || data.items.length === 0) return null;
  return (
    <>
      <h3>Linked sign-ins</h3>
      <ul>
        {data.items.map(({ provider, linkedAt }) => (
          <li key={provider}>
            {provider}, since {moment(linkedAt)}
          </li>
        ))}
      </ul>
    </>
  );
}
