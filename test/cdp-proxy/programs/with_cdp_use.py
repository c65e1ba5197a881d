# browser-use's CDP client as a customer runs it: performs all actions of a client, then waits to be killed.
import asyncio, base64, json, sys

from cdp_use.client import CDPClient

orders = json.loads(sys.argv[1])


async def main():
    cdp = CDPClient(orders["url"])
    await cdp.start()
    loop = asyncio.get_running_loop()
    targets = (await cdp.send.Target.getTargets())["targetInfos"]
    target = next(each["targetId"] for each in targets if each["url"] == orders["page"])

    async def attach(target_id):
        attached = await cdp.send.Target.attachToTarget({"targetId": target_id, "flatten": True})
        return attached["sessionId"]

    page = await attach(target)
    await cdp.send.Page.enable(session_id=page)

    async def run(expression, session=page):
        asked = {"expression": expression, "awaitPromise": True, "userGesture": True, "returnByValue": True}
        answer = await cdp.send.Runtime.evaluate(asked, session_id=session)
        return answer["result"].get("value")

    async def until(expression, session=page):
        while not await run(expression, session):
            await asyncio.sleep(0.05)

    async def click(selector):
        place = f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])(document.querySelector('{selector}').getBoundingClientRect())"
        x, y = await run(place)
        for kind in ["mousePressed", "mouseReleased"]:
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            await cdp.send.Input.dispatchMouseEvent(event, session_id=page)

    size = {"width": 500, "height": 400, "deviceScaleFactor": 1, "mobile": False}
    await cdp.send.Emulation.setDeviceMetricsOverride(size, session_id=page)
    await run("document.querySelector('#name').focus()")
    await cdp.send.Input.insertText({"text": "Grace"}, session_id=page)
    await click("#greet")
    form = await run("document.title")

    opening = loop.create_future()
    cdp.register.Target.targetCreated(
        lambda event, _session: event["targetInfo"].get("openerId") == target and opening.set_result(event["targetInfo"])
    )
    await cdp.send.Target.setDiscoverTargets({"discover": True})
    await click("#popup")
    opened = await opening
    popup_session = await attach(opened["targetId"])
    await until("document.title", popup_session)
    popup = await run("document.title", popup_session)
    await cdp.send.Target.closeTarget({"targetId": opened["targetId"]})

    begun = loop.create_future()
    cdp.register.Browser.downloadWillBegin(lambda event, _session: begun.set_result(event["suggestedFilename"]))
    behavior = {"behavior": "allow", "downloadPath": "/tmp", "eventsEnabled": True}
    await cdp.send.Browser.setDownloadBehavior(behavior)
    await click("#download")
    download = await begun

    root = (await cdp.send.DOM.getDocument(session_id=page))["root"]["nodeId"]
    node = await cdp.send.DOM.querySelector({"nodeId": root, "selector": "#file"}, session_id=page)
    given = {"nodeId": node["nodeId"], "files": [orders["file"]]}
    await cdp.send.DOM.setFileInputFiles(given, session_id=page)
    await until("document.title.startsWith('file ')")
    upload = await run("document.title")

    asking = loop.create_future()
    cdp.register.Page.javascriptDialogOpening(lambda event, _session: asking.set_result(event["message"]))
    clicking = asyncio.create_task(click("#ask"))
    asked = await asking
    await cdp.send.Page.handleJavaScriptDialog({"accept": True}, session_id=page)
    await clicking
    dialog = [asked, await run("document.title")]

    shot = await cdp.send.Page.captureScreenshot(session_id=page)
    screenshot = base64.b64decode(shot["data"])[1:4].decode()

    # Leftovers: a page in its own context, paused new pages, and paused requests of the page.
    context = (await cdp.send.Target.createBrowserContext())["browserContextId"]
    await cdp.send.Target.createTarget({"url": orders["page"], "browserContextId": context})
    pause = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
    await cdp.send.Target.setAutoAttach(pause)
    await cdp.send.Fetch.enable(session_id=page)
    deeds = {
        "form": form,
        "popup": popup,
        "download": download,
        "upload": upload,
        "dialog": dialog,
        "screenshot": screenshot,
    }
    print(json.dumps(deeds), flush=True)
    await asyncio.sleep(3600)


asyncio.run(main())
