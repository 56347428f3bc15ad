import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import { cell, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt } from '../../parts/basics.js';
import { List } from '../../parts/table.js';
import { mayChange } from '../../session.js';

type OneSession = Address<'/api/projects/{projectId}/users/{user}/sessions/{session}'>;
type OneUser = Address<'/api/projects/{projectId}/users/{user}'>;

/** Where a user is signed in. */
export function UserSessions({ path }: { path: OneUser }) {
  const all = below(path, '/sessions');
  const sessions = useLoad(all);
  const end = (which: typeof all | OneSession, text: string): Promise<void> =>
    attempt(async () => {
      await call('DELETE', which);
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
                  onClick={() => void end(below(all, '/{session}', { session: session.id }), 'The session has ended')}
                >
                  End
                </button>
              ) : null,
          },
        ]}
      />
      {mayChange.value && (sessions.data?.items.length ?? 0) > 0 && (
        <p class="row">
          <button onClick={() => void end(all, 'All sessions have ended')}>End all sessions</button>
        </p>
      )}
    </>
  );
}

/** Accounts of other services that open this one; nothing where there are none. */
export function UserIdentities({ path }: { path: OneUser }) {
  const { data } = useLoad(below(path, '/identities'));
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
