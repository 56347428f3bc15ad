import { useState } from 'preact/hooks';
import { api, queryOf } from '../api.js';
import { moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, ConfirmByName, Dialog, quote, say, tellRefusal, Trouble } from '../parts/basics.js';
import { Filters } from '../parts/filters.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange, project } from '../session.js';

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
  const email = query.get('email') ?? '';
  const path = `${base}${queryOf({ email, page: page > 1 ? page : null })}`;
  const { data, error, loading, reload } = useLoad<UserPage>(path);
  const named = quote(project.value?.name ?? '');
  const open = query.get('open');
  return (
    <>
      <h1>Users</h1>
      <Filters fields={[{ name: 'email', label: 'E-mail begins with' }]} />
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Users"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={idOf}
        empty="No users."
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
          { name: 'Since', show: (user) => moment(user.createdAt) },
        ]}
      />
      <p class="row">
        {page > 1 && <a href={linkHere({ page: page === 2 ? null : String(page - 1) })}>← Newer</a>}
        {data && data.page * data.limit < data.total && <a href={linkHere({ page: String(page + 1) })}>Older →</a>}
        {data && (
          <span class="muted">
            {number(data.total)} {data.total === 1 ? 'user' : 'users'}
          </span>
        )}
      </p>
      <Commands cli={`bsvc user list --project ${named}`} path={path} />
      {open && (
        <OneUser key={open} base={base} id={open} onClose={() => goTo(linkHere({ open: null }))} onChange={reload} />
      )}
    </>
  );
}

interface Session {
  id: string;
  createdAt: string;
  lastUsedAt?: string;
  userAgent?: string;
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
  const named = quote(project.value?.name ?? '');
  const run = async (method: 'POST' | 'DELETE', rest: string, text: string): Promise<void> => {
    try {
      await api(method, `${path}${rest}`);
      say(text);
      reload();
      sessions.reload();
      onChange();
    } catch (refusal) {
      tellRefusal(refusal);
    }
  };
  return (
    <Dialog title={data?.email ?? 'User'} onClose={onClose}>
      <Trouble error={error} onRetry={reload} />
      {data && (
        <>
          <dl class="pairs">
            {Object.entries(data).map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
              </>
            ))}
            <dt>sessions</dt>
            <dd>{sessions.data ? sessions.data.items.length : '…'}</dd>
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
              <button onClick={() => void run('DELETE', '/sessions', 'All sessions have ended')}>
                End all sessions
              </button>
              <button class="danger" onClick={() => setDeleting(true)}>
                Delete…
              </button>
            </p>
          )}
          <Commands
            cli={`bsvc user ${data.disabled ? 'enable' : 'disable'} ${quote(data.email)} --project ${named}`}
            method="POST"
            path={`${path}/${data.disabled ? 'enable' : 'disable'}`}
          />
          {deleting && (
            <ConfirmByName
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
