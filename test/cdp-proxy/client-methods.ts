/** Methods that clients can send, from their packages. Tests compare them with those that installed clients send. */
const clients = {
  /** playwright 1.65.1, and @playwright/mcp 0.0.83, which adds no methods. */
  playwright: {
    Browser: `
        cancelDownload close getVersion getWindowBounds getWindowForTarget grantPermissions resetPermissions
        setDockTile setDownloadBehavior setWindowBounds`,
    CSS: "disable enable getStyleSheetText startRuleUsageTracking stopRuleUsageTracking",
    DOM: `
        describeNode disable enable getBoxModel getContentQuads getFrameOwner resolveNode scrollIntoViewIfNeeded
        setFileInputFiles`,
    Debugger: "disable enable getScriptSource resume setSkipAllPauses",
    Emulation: `
        setDefaultBackgroundColorOverride setDeviceMetricsOverride setEmulatedMedia setFocusEmulationEnabled
        setGeolocationOverride setLocaleOverride setScriptExecutionDisabled setTimezoneOverride
        setTouchEmulationEnabled setUserAgentOverride`,
    Fetch: "continueRequest continueWithAuth disable enable failRequest fulfillRequest",
    HeapProfiler: "collectGarbage",
    IO: "close read",
    Input: `
        dispatchDragEvent dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent insertText setInterceptDrags`,
    Inspector: "enable",
    Log: "enable",
    Network: `
        clearBrowserCache emulateNetworkConditions enable getResponseBody loadNetworkResource
        setBypassServiceWorker setCacheDisabled setExtraHTTPHeaders`,
    Page: `
        addScriptToEvaluateOnNewDocument bringToFront captureScreenshot close createIsolatedWorld enable
        getFrameTree getLayoutMetrics getNavigationHistory handleJavaScriptDialog navigate
        navigateToHistoryEntry printToPDF reload removeScriptToEvaluateOnNewDocument screencastFrameAck
        setBypassCSP setFontFamilies setInterceptFileChooserDialog setLifecycleEventsEnabled startScreencast
        stopScreencast`,
    Profiler: "disable enable startPreciseCoverage stopPreciseCoverage takePreciseCoverage",
    Runtime: `
        addBinding callFunctionOn disable enable evaluate getProperties releaseObject runIfWaitingForDebugger`,
    Security: "setIgnoreCertificateErrors",
    Storage: "clearCookies getCookies setCookies",
    Target: `
        attachToBrowserTarget attachToTarget closeTarget createBrowserContext createTarget detachFromTarget
        disposeBrowserContext getTargetInfo setAutoAttach`,
    Tracing: "end start",
  },
  /** puppeteer-core 24.43.1. */
  puppeteer: {
    Accessibility: "getFullAXTree queryAXTree",
    Animation: "enable getPlaybackRate setPlaybackRate",
    Audits: "enable",
    Autofill: "trigger",
    BluetoothEmulation: "disable enable simulatePreconnectedPeripheral",
    Browser: `
        close getVersion getWindowBounds getWindowForTarget grantPermissions resetPermissions setContentsSize
        setDownloadBehavior setPermission setWindowBounds`,
    CSS: "disable enable getStyleSheetText startRuleUsageTracking stopRuleUsageTracking",
    DOM: "describeNode disable enable getFrameOwner resolveNode scrollIntoViewIfNeeded setFileInputFiles",
    Debugger: "disable enable getScriptSource setSkipAllPauses",
    DeviceAccess: "cancelPrompt enable selectPrompt",
    Emulation: `
        addScreen clearDeviceMetricsOverride clearIdleOverride getScreenInfos removeScreen setCPUThrottlingRate
        setDefaultBackgroundColorOverride setDeviceMetricsOverride setEmulatedMedia setEmulatedVisionDeficiency
        setFocusEmulationEnabled setGeolocationOverride setIdleOverride setScriptExecutionDisabled
        setTimezoneOverride setTouchEmulationEnabled`,
    Extensions: "getExtensions loadUnpacked triggerAction uninstall",
    Fetch: "continueRequest continueWithAuth disable enable failRequest fulfillRequest",
    HeapProfiler: "collectGarbage disable enable takeHeapSnapshot",
    IO: "close read",
    Input: `
        dispatchDragEvent dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent insertText setInterceptDrags`,
    Log: "enable",
    Network: `
        deleteCookies emulateNetworkConditions emulateNetworkConditionsByRule enable getCookies
        getRequestPostData getResponseBody setBypassServiceWorker setCacheDisabled setCookies
        setExtraHTTPHeaders setUserAgentOverride`,
    Page: `
        addScriptToEvaluateOnNewDocument bringToFront captureScreenshot close createIsolatedWorld enable
        getFrameTree getNavigationHistory handleJavaScriptDialog navigate navigateToHistoryEntry printToPDF
        reload removeScriptToEvaluateOnNewDocument screencastFrameAck setBypassCSP setInterceptFileChooserDialog
        setLifecycleEventsEnabled startScreencast stopScreencast`,
    Performance: "enable getMetrics",
    Profiler: "disable enable startPreciseCoverage stopPreciseCoverage takePreciseCoverage",
    Runtime: `
        addBinding callFunctionOn enable evaluate getProperties queryObjects releaseObject removeBinding
        runIfWaitingForDebugger`,
    Security: "setIgnoreCertificateErrors",
    Storage: "getCookies setCookies",
    Target: `
        attachToTarget closeTarget createBrowserContext createTarget detachFromTarget disposeBrowserContext
        getBrowserContexts getDevToolsTarget openDevTools setAutoAttach setDiscoverTargets`,
    Tracing: "end start",
    WebMCP: "enable invokeTool",
  },
  /** Methods that chrome-devtools-mcp 1.11.0 adds to Puppeteer, including recorded methods of its DevTools. */
  chromeDevtoolsMcp: {
    Audits: "disable",
    Autofill: "enable setAddresses",
    CSS: "getMatchedStylesForNode",
    DOM: "getDocument pushNodeByPathToFrontend",
    DOMDebugger: "getEventListeners",
    Debugger: "resume setAsyncCallStackDepth setBlackboxExecutionContexts setBlackboxPatterns setPauseOnExceptions",
    Emulation: "setLocaleOverride",
    Log: "disable startViolationsReport stopViolationsReport",
    Network: "clearBrowserCache loadNetworkResource overrideNetworkState setAttachDebugStack setBlockedURLs",
    PWA: "changeAppUserSettings getOsAppState install launch uninstall",
    Page: "disable getResourceTree setDocumentContent startScreenRecording stopScreenRecording",
    Runtime: "disable getIsolateId",
    Storage: "clearDataForOrigin getStorageKey getUsageAndQuota",
    Target: "getTargetInfo getTargets",
    Tracing: "recordClockSyncMarker",
    WebMCP: "cancelInvocation disable",
  },
  /** @browserbasehq/stagehand 3.7.3. */
  stagehand: {
    Accessibility: "enable getFullAXTree",
    Browser: "grantPermissions setDownloadBehavior",
    DOM: `
        describeNode enable getBoxModel getDocument getFrameOwner getNodeForLocation querySelector requestNode
        resolveNode scrollIntoViewIfNeeded setFileInputFiles`,
    Emulation: "setDefaultBackgroundColorOverride setDeviceMetricsOverride setVisibleSize",
    Fetch: "continueRequest disable enable failRequest",
    Input: "dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent insertText",
    Network: "enable getResponseBody setExtraHTTPHeaders",
    Overlay: "enable hideHighlight highlightNode",
    Page: `
        addScriptToEvaluateOnNewDocument bringToFront captureScreenshot createIsolatedWorld enable getFrameTree
        getNavigationHistory navigate navigateToHistoryEntry reload setLifecycleEventsEnabled`,
    Runtime: "callFunctionOn enable evaluate releaseObject runIfWaitingForDebugger",
    Storage: "clearCookies getCookies setCookies",
    Target: `
        activateTarget attachToTarget closeTarget createTarget detachFromTarget getTargets setAutoAttach
        setDiscoverTargets`,
    WebMCP: "cancelInvocation enable invokeTool",
  },
  /** browser-use 0.13.14 from PyPI. */
  browserUse: {
    Accessibility: "getFullAXTree",
    Browser: "getVersion grantPermissions setDownloadBehavior",
    DOM: `
        describeNode discardSearchResults enable focus getAttributes getBoxModel getContentQuads getDocument
        getFrameOwner getNodeForLocation getSearchResults performSearch pushNodesByBackendIdsToFrontend
        querySelector querySelectorAll resolveNode scrollIntoViewIfNeeded setFileInputFiles`,
    DOMSnapshot: "captureSnapshot",
    DOMStorage: "disable enable getDOMStorageItems",
    Emulation: "clearGeolocationOverride setDeviceMetricsOverride setGeolocationOverride",
    Fetch: "continueRequest continueWithAuth enable",
    Input: "dispatchKeyEvent dispatchMouseEvent insertText synthesizeScrollGesture",
    Log: "enable",
    Network: "enable getCookies getResponseBody setExtraHTTPHeaders",
    Page: `
        addScriptToEvaluateOnNewDocument captureScreenshot enable getFrameTree getLayoutMetrics
        getNavigationHistory handleJavaScriptDialog navigate navigateToHistoryEntry printToPDF reload
        removeScriptToEvaluateOnNewDocument screencastFrameAck setLifecycleEventsEnabled startScreencast
        stopScreencast`,
    Runtime: "callFunctionOn enable evaluate getProperties releaseObject runIfWaitingForDebugger",
    Storage: "clearCookies getCookies setCookies",
    SystemInfo: "getProcessInfo",
    Target: `
        activateTarget attachToTarget closeTarget createTarget getTargetInfo getTargets setAutoAttach
        setDiscoverTargets`,
  },
};

export type ClientName = keyof typeof clients;

export const clientNames = Object.keys(clients) as readonly ClientName[];

/** Returns the methods that a client can send. */
export function methodsOf(client: ClientName): string[] {
  return Object.entries(clients[client]).flatMap(([domain, names]) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => `${domain}.${name}`),
  );
}
