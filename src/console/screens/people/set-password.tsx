import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import { Dialog, say, Trouble, useAction } from '../../parts/basics.js';
import { Form, PasswordField } from '../../parts/form.js';

export function SetPassword({
  path,
  onClose,
  onDone,
}: {
  path: Address<'/api/projects/{projectId}/users/{user}'>;
  onClose: () => void;
  onDone: () => void;
}) {
  const [password, setPassword] = useState('');
  const [busy, save, refused] = useAction(async () => {
    await call('POST', below(path, '/set-password'), { body: { password } });
    say('The password is set; every session has ended');
    onClose();
    onDone();
  });
  return (
    <Dialog title="Set the password" onClose={onClose}>
      <Form onSubmit={() => void save()}>
        <p>It ends all sessions of the user, who gets no mail about it.</p>
        <PasswordField label="New password" isNew value={password} onText={setPassword} />
        <Trouble error={refused} />
        <button class="primary" disabled={busy}>
          Set the password
        </button>
      </Form>
    </Dialog>
  );
}
