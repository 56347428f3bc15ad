import { useState } from 'preact/hooks';
import { api, queryOf } from '../../api.js';
import { cell, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt, Dialog, say, Trouble, useAction } from '../../parts/basics.js';
import { type CommandLine, CommandList, Commands, ofProject, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Filters } from '../../parts/filters.js';
import { Form, PasswordField } from '../../parts/form.js';
import { List, Pages } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange } from '../../session.js';

interface User {
  id?: string;
  _id?: string;
  email: string;
  disabled?: boolean;
  emailVerified?: boolean;
  createdAt: string;
  [field: string]: unknown;
}

interface UserPage {
  items: User[];
  total: number;
  page: number;
  limit: number;
}

const idOf = (user: User): string => user.id ?? user._id ?? user.email;

export function Users() {
  const { parts, query } = place.value;
  const base = `/api/projects/${parts[1] ?? ''}/users`;
  const page = Number(query.get('page') ?? 1) || 1;
  const [email, q] = [query.get('email') ?? '', query.get('q') ?? ''];
  const path = `${base}${queryOf({ email, q, page: page > 1 ? page : null })}`;
  const list = useLoad<UserPage>(path);
  const open = query.get('open');
  return (
    <>
      <h1>Users</h1>
      <Filters
        fields={[
          { name: 'email', label: 'E-mail begins with' },
          { name: 'q', label: 'Id, or any text holds' },
        ]}
      />
      <List
        label="Users"
        of={list}
        keyOf={idOf}
        empty="No users. Apps sign them up; so does “bsvc user create”."
        columns={[
          {
            name: 'E-mail',
            show: (user) => (
              <a class="opens" href={linkHere({ open: idOf(user) })}>
                {user.email}
              </a>
            ),
          },
          { name: 'Verified', show: (user) => (user.emailVerified ? 'yes' : 'no') },
          { name: 'State', show: (user) => (user.disabled ? <span class="bad">disabled</span> : 'active') },
          { name: 'Created', show: (user) => moment(user.createdAt) },
        ]}
      />
      <Pages of={list.data} names={['user', 'users']} />
      <Commands
        cli={`bsvc user list ${ofProject()}${email && ` --email ${quote(email)}`}${q && ` --search ${quote(q)}`}`}
        path={path}
      />
      {open && (
        <OneUser
          key={open}
          base={base}
          id={open}
          onClose={() => goTo(linkHere({ open: null }))}
          onChange={list.reload}
        />
      )}
    </>
  );
}

interface Session {
  id: string;
  createdAt: string;
  usedAt: string;
  ip: string | null;
  userAgent: string | null;
}

function OneUser({
  base,
  id,
  onClose,
  onChange,
}: {
  base: string;
  id: string;
  onClose: () => void;
  onChange: () => void;
}) {
  const path = `${base}/${encodeURIComponent(id)}`;
  const { data, error, reload } = useLoad<User>(path);
  const sessions = useLoad<{ items: Session[] }>(`${path}/sessions`);
  const [deleting, setDeleting] = useState(false);
  const [setting, setSetting] = useState(false);
  const run = async (method: 'POST' | 'DELETE', rest: string, text: string): Promise<void> => {
    await attempt(async () => {
      await api(method, `${path}${rest}`);
      reload();
      sessions.reload();
      onChange();
      return text;
    });
  };
  const commands = (): CommandLine[] => {
    const cli = (words: string, more = ''): string =>
      `bsvc user ${words} ${quote(data?.email ?? id)} ${ofProject()}${more}`;
    const switched = data?.disabled ? 'enable' : 'disable';
    const sessionsPath = `${path}/sessions`;
    if (!mayChange.value) return [{ cli: cli('sessions'), path: sessionsPath }];
    return [
      { name: data?.disabled ? 'Enable' : 'Disable', cli: cli(switched), method: 'POST', path: `${path}/${switched}` },
      {
        name: 'Set the password',
        cli: cli('set-password'),
        method: 'POST',
        path: `${path}/set-password`,
        body: { password: '…' },
      },
      { name: 'End all sessions', cli: cli('sessions', ' --revoke all'), method: 'DELETE', path: sessionsPath },
      { name: 'Delete', cli: cli('delete'), method: 'DELETE', path },
    ];
  };
  return (
    <Dialog title={data?.email ?? 'User'} onClose={onClose} wide>
      <Trouble error={error} onRetry={reload} />
      {data && (
        <>
          <dl class="pairs">
            {Object.entries(data).map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>
                  {/^(created|updated)At$/.test(name)
                    ? moment(String(value))
                    : typeof value === 'string'
                      ? value
                      : JSON.stringify(value)}
                </dd>
              </>
            ))}
          </dl>
          {mayChange.value && (
            <p class="row">
              <button
                onClick={() =>
                  void run(
                    'POST',
                    data.disabled ? '/enable' : '/disable',
                    data.disabled ? 'The account works again' : 'The account is disabled',
                  )
                }
              >
                {data.disabled ? 'Enable' : 'Disable'}
              </button>
              <button onClick={() => setSetting(true)}>Set the password…</button>
              <button class="danger" onClick={() => setDeleting(true)}>
                Delete…
              </button>
            </p>
          )}
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
              { name: 'With', show: ({ userAgent }) => cell(userAgent ?? '') },
              {
                name: 'End',
                show: (session) =>
                  mayChange.value ? (
                    <button
                      class="small"
                      aria-label={`End the session of ${moment(session.createdAt)}`}
                      onClick={() => void run('DELETE', `/sessions/${session.id}`, 'The session has ended')}
                    >
                      End
                    </button>
                  ) : null,
              },
            ]}
          />
          {mayChange.value && (sessions.data?.items.length ?? 0) > 0 && (
            <p class="row">
              <button onClick={() => void run('DELETE', '/sessions', 'All sessions have ended')}>
                End all sessions
              </button>
            </p>
          )}
          <CommandList lines={commands} />
          {setting && (
            <SetPassword
              path={path}
              onClose={() => setSetting(false)}
              onDone={() => {
                setSetting(false);
                sessions.reload();
              }}
            />
          )}
          {deleting && (
            <Confirm
              title="Delete the account"
              text="For good. Documents that the user owns stay."
              name={data.email}
              action="Delete the account"
              onClose={() => setDeleting(false)}
              onConfirm={async () => {
                await api('DELETE', path);
                say('The account is deleted');
                onChange();
                onClose();
              }}
            />
          )}
        </>
      )}
    </Dialog>
  );
}

function SetPassword({ path, onClose, onDone }: { path: string; onClose: () => void; onDone: () => void }) {
  const [password, setPassword] = useState('');
  const [busy, save, refused] = useAction(async () => {
    await api('POST', `${path}/set-password`, { password });
    say('The password is set; every session has ended');
    onDone();
  });
  return (
    <Dialog title="Set the password" onClose={onClose}>
      <Form onSubmit={() => void save()}>
        <p>It ends all sessions of the user, who is told nothing.</p>
        <PasswordField label="New password" isNew value={password} onText={setPassword} />
        <Trouble error={refused} />
        <button class="primary" disabled={busy}>
          Set the password
        </button>
      </Form>
    </Dialog>
  );
}
